"""TG430 to TG449: the server that a spec starts, and the containers that it is deployed in."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

ENTRIES = (
    CodeEntry(
        "TG430",
        "option-that-the-release-lacks",
        Consequence.REFUSED,
        "The options in `server` are those that the release's tritonserver has.",
        "tritonserver prints its usage and ends where it does not know an option (server/src/command_line_parser.cc); a setting of --metrics-config that it"
        " does not know is ignored (tried on 24.10).",
        "Leave the key out, or use a release that has it: the message names one.",
        'triton: {release: "24.10"}\nserver: {http: {max_input_size: 256MiB}}',
        'triton: {release: "25.08"}\nserver: {http: {max_input_size: 256MiB}}',
    ),
    CodeEntry(
        "TG431",
        "load-of-an-unknown-model",
        Consequence.REFUSED,
        "`server.load_models` names models of the spec.",
        "A server that is to load a model that is not there ends at once, or is never ready.",
        "Write the name as the model has it.",
        "server: {model_control: explicit, load_models: [resnet]}\nmodels: [{name: resnet50, source: resnet50.onnx}]",
        "server: {model_control: explicit, load_models: [resnet50]}\nmodels: [{name: resnet50, source: resnet50.onnx}]",
    ),
    CodeEntry(
        "TG432",
        "resource-that-is-too-scarce",
        Consequence.REFUSED,
        "There is as much of a resource of the rate limiter as one execution takes.",
        "Triton refuses to load a model that could never run (core/src/rate_limiter.cc).",
        "Raise the count in `server.rate_limit`, or lower the one in the model's `instances`.",
        "server: {rate_limit: {resources: [{name: slot, count: 1}]}}\n# and for a model\ninstances: [{rate_limiter: {resources: [{name: slot, count: 2}]}}]",
        "server: {rate_limit: {resources: [{name: slot, count: 2}]}}\n# and for a model\ninstances: [{rate_limiter: {resources: [{name: slot, count: 2}]}}]",
    ),
    CodeEntry(
        "TG433",
        "gpu-that-the-container-lacks",
        Consequence.REFUSED,
        "Models name GPUs that `deploy.gpus` gives the container.",
        "Inside a container GPUs and MIG devices are numbered from 0, whatever their numbers are on the host; Triton refuses a model that names one that is not"
        " there.",
        "Number the GPUs of `instances` from 0, or give the container more of them.",
        "deploy: {gpus: [6, 7]}\n# and for a model\ninstances: [{kind: gpu, gpus: [6]}]",
        "deploy: {gpus: [6, 7]}\n# and for a model\ninstances: [{kind: gpu, gpus: [0]}]",
    ),
    CodeEntry(
        "TG434",
        "model-for-gpus-alone",
        Consequence.REFUSED,
        "A model that `render --cpu` writes asks for no GPU.",
        "`--cpu` leaves out what the spec's own keys say about GPUs. What `config` says in Triton's words is laid over everything, and is not guessed at."
        " A deployment has no docker-compose.cpu.yml then, which is said as advice.",
        "Say it with the key of the spec that stands for it, or leave the model out of a spec for the CPU.",
        "config: {instance_group: [{kind: KIND_GPU}]}",
        "instances: [{kind: gpu}]",
    ),
    CodeEntry(
        "TG435",
        "path-that-no-container-can-have",
        None,
        "Paths of a deployment can be stated in a compose file, and hide nothing in the container.",
        "Engines that are kept where the container has the models or Triton itself would hide these; a compose file is Unicode text, and the name of a folder"
        " may hold bytes that are none. Files of the deployment inside a repository would be a model's to Triton.",
        "Choose another folder.",
        "triton: {engine_cache: /models}",
        "triton: {engine_cache: /engine-cache}",
    ),
    CodeEntry(
        "TG436",
        "server-key-without-effect-here",
        None,
        "`tritongen serve` follows what `server` says.",
        "The embedded server is of release 24.10 and does not know newer options, tritongen itself needs its log and metrics and names its shared memory, and"
        " host policies may name cores and NUMA nodes that only the deployment's machine has. All else is passed on.",
        "Nothing has to be done: the deployment of the spec has the option.",
    ),
    CodeEntry(
        "TG438",
        "port-of-two-services",
        None,
        "The services of a deployment have ports of their own.",
        "The container engine publishes a port of the host once, and does not start the second container that asks for it.",
        "Give each service a port of its own.",
        "server: {listen: {http: 3000}}",
        "server: {listen: {http: 3000}}\ndeploy: {monitoring: {grafana_port: 3001}}",
    ),
    CodeEntry(
        "TG439",
        "precision-without-a-gpu",
        None,
        "`tritongen serve` serves on this machine what a spec asks of a GPU.",
        "A file that was converted for `precision: fp16` loads on a CPU, too. ONNX Runtime computes it in FP32 there, with casts around its nodes: it is "
        "slower than the source, and its answers are those of the rounded weights.",
        "To try the models themselves, serve the repository that `tritongen render --cpu` writes; to try what the GPU will compute, nothing has to be done.",
    ),
    CodeEntry(
        "TG440",
        "load-that-plain-locust-does-not-send",
        None,
        "The deployment's Locust sends what the scenario says.",
        "Locust in a deployment is a closed loop of users without the files of the spec: it sends no trace and no stages, and no files of `data`. It knows no"
        " warmup, and says no verdict on an `slo`. A model that the server does not load at its start answers none of its requests, nor does one with"
        " sequence_batching: each of them stands alone. Each worker is one process: tens of thousands of users are late.",
        "Nothing has to be done where that is enough; `tritongen load` sends the scenario as it is, from several machines where one is too slow.",
        "server: {model_control: explicit, load_models: [a]}\nload: {scenarios: {steady: {rate: 200, models: [a, b]}}}",
        "server: {model_control: explicit, load_models: [a, b]}\nload: {scenarios: {steady: {rate: 200, models: [a, b]}}}",
    ),
    CodeEntry(
        "TG441",
        "deployment-of-other-models",
        None,
        "A deployment is made from the models that the repository holds.",
        "With --keep-going a model that is refused, or whose folder holds somebody's work, stays in the repository as it was, and so does the deployment:"
        " made from the others, it would take the GPU or the engines from that model. A model that left the spec stays until --prune, and Triton loads it;"
        " what it needs nobody knows any more.",
        "Mend what is wrong with the model; remove one that is not wanted with `--prune`.",
        "tritongen render spec.yaml --deploy compose        # after a model was taken out of the spec",
        "tritongen render spec.yaml --deploy compose --prune",
    ),
    CodeEntry(
        "TG442",
        "builder-that-may-not-write",
        Consequence.REFUSED,
        "The user of the containers may write plans to the repository.",
        "Folders belong to the user who renders, and nobody else may write to them. plan-builder runs as `deploy.user`; where it can write no plan, it fails,"
        " and the server is not started.",
        "Write your own number, which `id -u` prints, or give the folders to that user.",
        'deploy: {user: "1000:1000"}        # and render as user 1001\nmodels: [{name: m, source: m.onnx, backend: tensorrt}]',
        'deploy: {user: "1001:1001"}\nmodels: [{name: m, source: m.onnx, backend: tensorrt}]',
    ),
    CodeEntry(
        "TG443",
        "backend-setting-against-a-plan",
        Consequence.REFUSED,
        "`server.backend_config` has what plans need.",
        "The tensorrt backend loads plans for later versions, and the plugins of plans, by settings of the whole backend. A deployment has those by itself; a"
        " value in `server.backend_config` takes their place, and must have what each model asks for.",
        "Leave the setting out, or write all that is asked for.",
        "server: {backend_config: {tensorrt: {version-compatible: false}}}\n# and for a model\ntensorrt: {build: {version_compatible: true}}",
        "# for a model\ntensorrt: {build: {version_compatible: true}}",
    ),
    CodeEntry(
        "TG444",
        "backend-setting-that-nobody-reads",
        Consequence.IGNORED,
        "`server.backend_config` names backends and settings that are there.",
        "Triton takes settings for any backend, under any name, and a backend reads those that it knows. A misspelt one is neither refused nor obeyed. Which"
        " settings the backends onnxruntime, tensorrt and python read is known from their sources; other backends are judged by their names alone.",
        "Write the name as the message has it, or remove the setting. An image with a backend of your own is named by `deploy.image`.",
        "server: {backend_config: {onnxruntime: {enable_global_thread_pool: true}}}",
        "server: {backend_config: {onnxruntime: {enable-global-threadpool: true}}}",
    ),
    CodeEntry(
        "TG445",
        "backend-setting-of-another-form",
        Consequence.REFUSED,
        "Values in `server.backend_config` are what the backend takes.",
        "A backend that cannot read a value does not start, and Triton loads none of its models. Sizes are bytes and times are seconds, as plain numbers.",
        "Write a value of the form that the message says.",
        "server: {backend_config: {python: {shm-default-byte-size: 64MiB}}}",
        "server: {backend_config: {python: {shm-default-byte-size: 67108864}}}",
    ),
    CodeEntry(
        "TG446",
        "image-of-another-release",
        None,
        "The tag of `deploy.image` is of the release that the spec is for, and of an image that serves its models.",
        "Configs, options and plans are made for one release of Triton. Another one may refuse an option that it does not know, and loads no plan of another"
        " TensorRT. NVIDIA's images for clients (-sdk) and for builds of one's own (-min) have no tritonserver, those for language models, PyTorch"
        " and TensorFlow (-vllm, -trtllm, -pyt, -tf2) no backend for ONNX files and plans. Tags that name no release, as an image of your own may have,"
        " are not judged.",
        "Write the image's release, or an image of the release.",
        'triton: {release: "24.10"}\ndeploy: {image: "nvcr.io/nvidia/tritonserver:25.08-py3"}',
        'triton: {release: "25.08"}\ndeploy: {image: "nvcr.io/nvidia/tritonserver:25.08-py3"}',
    ),
    CodeEntry(
        "TG447",
        "unknown-scenario-of-the-deployment",
        None,
        "`deploy.load.scenario` names one of `load.scenarios`.",
        "Locust in the deployment sends what that scenario says; without it there is nothing to send.",
        "Write the name as `load.scenarios` has it, or leave the key out: the first one is followed then.",
        "deploy: {load: {scenario: stedy}}\nload: {scenarios: {steady: {rate: 200}}}",
        "deploy: {load: {scenario: steady}}\nload: {scenarios: {steady: {rate: 200}}}",
    ),
    CodeEntry(
        "TG448",
        "deployment-settings-that-disagree",
        None,
        "The keys of `deploy` agree with one another, and with `server`.",
        "A limit of memory that the server's own pools use up ends the server. A variable that hides GPUs changes the numbers that `instances.gpus` has. Of"
        " several MIG devices a process sees one. A server that loads no model at its start is ready all the same. Alerts look back three days, which"
        " Prometheus must remember. Grafana's password is read from a file.",
        "The message names both keys: change one of them.",
        "server: {cache: {size: 8GiB}}\ndeploy: {memory: 4GiB}",
        "server: {cache: {size: 1GiB}}\ndeploy: {memory: 8GiB}",
    ),
    CodeEntry(
        "TG449",
        "repository-that-the-server-may-not-read",
        Consequence.REFUSED,
        "The user of the containers may read the repository.",
        "The server runs as `deploy.user`. Files that are written under a umask such as 077 are for their owner alone: Triton finds no model, or does not load"
        " it.",
        "Render under `umask 022` and let all read what is there (`chmod -R a+rX`), or write your own number, which `id -u` prints, into `deploy.user`.",
        'umask 077; tritongen render spec.yaml --deploy compose        # with deploy: {user: "1000:1000"}, as user 1001',
        "umask 022; tritongen render spec.yaml --deploy compose",
    ),
)
