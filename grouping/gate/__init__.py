"""The gate decides about new documents before they are stored, also while other writers add documents."""
