"""first light"""
import os
import onnxruntime as ort
import triton_python_backend_utils as pb
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(cfg):
        return cfg
    def initialize(self, args):
        p=os.path.join(args['model_repository'], args['model_version'], 'model.onnx')
        self.s=ort.InferenceSession(p)
    def execute(self, requests):
        r=[]
        for q in requests:
            f={t.name(): t.as_numpy() for t in q.inputs()}
            o=self.s.run(None,f)
            r.append(pb.InferenceResponse([pb.Tensor(n.name,v) for n,v in zip(self.s.get_outputs(),o)]))
        return r
