from .calibration import Calibration, ScorePostprocessor

__all__ = ["Calibration", "ScorePostprocessor"]
