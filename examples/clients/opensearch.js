// opensearch-js through the gateway: GATEWAY_URL=http://localhost:9280 INDEX=news node opensearch.js
"use strict";

const { readFileSync } = require("node:fs");
const { Client } = require("@opensearch-project/opensearch");

async function main() {
  const index = process.env.INDEX;
  const client = new Client({ node: process.env.GATEWAY_URL });
  const documents = readFileSync("documents.jsonl", "utf8").trim().split("\n").map(JSON.parse);

  const body = documents.flatMap((document, at) => [{ index: { _index: index, _id: String(at) } }, document]);
  const { body: written } = await client.bulk({ body });
  if (written.errors) throw new Error(JSON.stringify(written.items));
  await client.indices.refresh({ index });

  const { body: page } = await client.search({
    index,
    body: { query: { match: { body: "old bridge" } }, ext: { dedup: { members: 5 } } },
  });
  for (const hit of page.hits.hits) {
    console.log(`${hit._source.title} (+${hit.inner_hits.duplicates.hits.total.value - 1})`);
  }
  console.log(`folded: ${page.dedup.folded}`);
  await client.close();
}

main();
