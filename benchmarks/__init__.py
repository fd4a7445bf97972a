"""How fast Transom is, as ratios against its peers, measured in one run on one machine."""
