"""The gate: decides about new documents before they are stored, those of concurrent writers included."""
