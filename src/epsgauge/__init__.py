"""epsgauge measures the differential privacy that a training pipeline really spends."""
from epsgauge.stats.posterior import *
from epsgauge.stats.tally import Tally
