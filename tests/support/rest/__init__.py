"""What tries the gateway from outside: a client that sends bytes, requests, a comparison of answers."""
