# The binary is static and built beforehand (`make build`): the image holds it and nothing else, not even a shell.
FROM scratch
LABEL org.opencontainers.image.title="pod-checkpointer"
LABEL org.opencontainers.image.description="Keeps annotated pods of a node alive through a power cut without an API server"
LABEL org.opencontainers.image.source="https://github.com/pod-checkpointer/pod-checkpointer"
LABEL org.opencontainers.image.licenses="Apache-2.0"
COPY bin/checkpointer /checkpointer
ENTRYPOINT ["/checkpointer"]
