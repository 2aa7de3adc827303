if __name__ != "__main__":

    class TritonPythonModel:
        def execute(self, requests):
            raise NotImplementedError
