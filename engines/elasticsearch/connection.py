"""The elasticsearch client's own connections with less work a request."""

from elastic_transport import NodeConfig, Urllib3HttpNode

from shinglefold.engines.http.quick_connection import quicken


class QuickHttpNode(Urllib3HttpNode):
    """Sends and reads as the client does."""

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        quicken(self.pool)
