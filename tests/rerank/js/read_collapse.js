// Reads an answer as code written for a native collapse does, and prints what it read as JSON.
// Usage: node read_collapse.js URL INDEX BODY
"use strict";

const { Client } = require("@opensearch-project/opensearch");

async function main([url, index, body]) {
  const client = new Client({ node: url });
  const { body: answer } = await client.search({ index, body: JSON.parse(body) });
  const read = answer.hits.hits.map((hit) => {
    const inner = hit.inner_hits.duplicates.hits;
    return {
      id: hit._id,
      title: hit._source.title,
      group: inner.total.value,
      best: inner.max_score,
      members: inner.hits.map((member) => [member._index, member._id, member._source.title]),
    };
  });
  const keys = Object.keys(answer).sort();
  console.log(JSON.stringify({ total: answer.hits.total, timedOut: answer.timed_out, keys, read }));
  await client.close();
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
