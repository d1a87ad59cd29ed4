#!/bin/sh
# curl through the gateway: GATEWAY_URL=http://localhost:9280 INDEX=news sh curl.sh
set -eu

curl="curl --silent --show-error --fail-with-body"

awk '{ printf "{\"index\": {\"_id\": \"%d\"}}\n%s\n", NR - 1, $0 }' documents.jsonl |
  $curl -H "Content-Type: application/x-ndjson" --data-binary @- \
    "$GATEWAY_URL/$INDEX/_bulk?filter_path=errors" && echo
$curl -X POST "$GATEWAY_URL/$INDEX/_refresh?filter_path=_shards.failed" && echo

$curl -H "Content-Type: application/json" "$GATEWAY_URL/$INDEX/_search?pretty" -d '{
  "query": {"match": {"body": "old bridge"}},
  "_source": ["title"],
  "ext": {"dedup": {"members": 5}}
}' | grep -E '"(title|folded)" ?:'
