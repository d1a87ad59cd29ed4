"""opensearch-py's own serializer with answers read faster."""

from typing import Any

from opensearchpy.exceptions import SerializationError
from opensearchpy.serializer import JSONSerializer

from shinglefold.engines.http.json_answers import read_json


class OpenSearchSerializer(JSONSerializer):
    """Writes requests as the client does, and reads answers faster."""

    def loads(self, s: str) -> Any:  # noqa: ANN401 - JSON
        """Return what an answer holds."""
        try:
            return read_json(s)
        except (ValueError, TypeError) as error:
            raise SerializationError(s, error) from error
