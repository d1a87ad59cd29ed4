"""What the elasticsearch client raises, translated."""

from elasticsearch import ApiError, SerializationError, TransportError, UnsupportedProductError

from shinglefold.engines.http.errors import ClientErrors, is_broken_answer, not_json, refusal, unavailable
from shinglefold.errors import EngineError


def _translate(error: Exception, who: str) -> EngineError:
    if isinstance(error, UnsupportedProductError):
        return EngineError(f"{who} is no Elasticsearch; say opensearch+http://… if it is OpenSearch")
    if isinstance(error, ApiError):
        if _is_other_generation(error):
            return EngineError(
                f"{who} is of an older generation than the client; install its own, such as "
                "'elasticsearch>=8.19,<9' for Elasticsearch 8"
            )
        return refusal(error.status_code, error.body or error.message, who)
    if isinstance(error, SerializationError):
        return not_json(who, (*error.errors, error))
    if isinstance(error, TransportError):
        return unavailable(who, error)
    return EngineError(f"{who}: the client refused: {error}. Check the connection's options.")


def _is_other_generation(error: ApiError) -> bool:
    """Tell whether a server refused the client's media type, which names the client's major version."""
    return error.status_code in (400, 406) and "media_type_header_exception" in str(error.body)


def _status(error: Exception) -> int:
    if isinstance(error, SerializationError):
        return 0 if is_broken_answer((*error.errors, error)) else 400
    # A server that refuses the client refuses all it sends: no use in looking for a culprit.
    if isinstance(error, ApiError) and not _is_other_generation(error):
        return error.status_code
    return 0


ERRORS = ClientErrors((ApiError, TransportError), _translate, _status)
