# The binary is static and built beforehand (`make build`): the image holds it and nothing else, not even a shell.
FROM scratch
COPY bin/checkpointer /checkpointer
ENTRYPOINT ["/checkpointer"]
