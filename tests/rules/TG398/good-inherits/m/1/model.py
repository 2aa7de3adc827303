import math


class TritonPythonModel(math.Base):
    pass
