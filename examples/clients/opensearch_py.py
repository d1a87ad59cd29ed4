"""opensearch-py through the gateway.

``GATEWAY_URL=http://localhost:9280 INDEX=news python opensearch_py.py``
"""

import json
import os
from pathlib import Path

from opensearchpy import OpenSearch, helpers

index = os.environ["INDEX"]
client = OpenSearch(os.environ["GATEWAY_URL"])
lines = Path("documents.jsonl").read_text("utf-8").splitlines()

helpers.bulk(
    client,
    [{"_index": index, "_id": str(at), "_source": json.loads(line)} for at, line in enumerate(lines)],
)
client.indices.refresh(index=index)

page = client.search(
    index=index,
    body={"query": {"match": {"body": "old bridge"}}, "ext": {"dedup": {"members": 5}}},
)
for hit in page["hits"]["hits"]:
    print(f"{hit['_source']['title']} (+{hit['inner_hits']['duplicates']['hits']['total']['value'] - 1})")
print(f"folded: {page['dedup']['folded']}")
client.close()
