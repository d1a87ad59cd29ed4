"""The elasticsearch client's own serializer with answers read faster."""

from typing import Any

from elasticsearch.serializer import JsonSerializer

from shinglefold.engines.http.json_answers import read_json


class ElasticsearchSerializer(JsonSerializer):
    """Writes requests as the client does, and reads answers faster."""

    def json_loads(self, data: bytes) -> Any:  # noqa: ANN401 - JSON
        """Return what an answer holds; the client translates what is raised."""
        return read_json(data)
