"""How each kind of engine answers the requests of the protocol."""
