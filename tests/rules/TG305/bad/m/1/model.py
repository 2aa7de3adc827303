# a model
