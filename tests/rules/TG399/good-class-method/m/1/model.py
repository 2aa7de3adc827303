class TritonPythonModel:
    def execute(self, requests):
        raise NotImplementedError

    @classmethod
    def auto_complete_config(cls, config):
        return config
