import collections


class TritonPythonModel(collections.UserDict):
    pass
