"""What opensearch-py raises, translated."""

from opensearchpy.exceptions import (
    ConnectionError as NoConnection,
)
from opensearchpy.exceptions import (
    ImproperlyConfigured,
    OpenSearchException,
    SerializationError,
    TransportError,
)

from shinglefold.engines.http.errors import ClientErrors, is_broken_answer, not_json, refusal, unavailable
from shinglefold.errors import EngineError


def _translate(error: Exception, who: str) -> EngineError:
    if isinstance(error, NoConnection):
        # Its own text repeats the client's class names; the cause says what happened.
        return unavailable(who, error.info or error.error)
    if isinstance(error, TransportError):
        return refusal(_status(error), error.info or error.error, who)
    if isinstance(error, SerializationError):
        return not_json(who, error.args)
    return EngineError(f"{who}: the client refused: {error}. Check the connection's options.")


def _status(error: Exception) -> int:
    if isinstance(error, SerializationError):
        return 0 if is_broken_answer(error.args) else 400
    status = error.status_code if isinstance(error, TransportError) else 0
    return status if isinstance(status, int) else 0


ERRORS = ClientErrors((OpenSearchException, ImproperlyConfigured), _translate, _status)

__all__ = ["ERRORS"]
