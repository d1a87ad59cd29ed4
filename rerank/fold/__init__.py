"""From hits to groups: which hits match, by signature or text, and how they cluster."""
