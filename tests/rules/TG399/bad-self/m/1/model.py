class TritonPythonModel:
    def execute(self, requests):
        raise NotImplementedError

    def auto_complete_config(self, config):
        return config
