class TritonPythonModel:
    def execute(self, requests):
        raise NotImplementedError

    @staticmethod
    def auto_complete_config():
        return None
