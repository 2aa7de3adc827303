if __name__ == "__main__":

    class TritonPythonModel:
        pass
