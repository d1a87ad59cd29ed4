"""The protocol of the gate, as generators that know no engine."""
