class TritonPythonModel:
    def execute(self, requests):
        return [request.inputs() for request in requests]
