# glowc with every compiler and emulator that it uses.
#
#   docker build -t glowc .
#   docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/work" glowc compile kws.onnx --board mps2-an386 -o build/kws
#
# It runs as user 1000, or as that of -u: your own number, so that it can write to the folder and the files are yours.
# PyTorch and Keras are large; to have them:
#   docker build -t glowc --build-arg EXTRAS=quantize,plan,metrics,tensorboard,dask,serial,tflm,sklearn,torch,keras .
FROM debian:12-slim

RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      python3 python3-venv gcc libc6-dev make cmake \
      gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib \
      gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross \
      qemu-system-arm qemu-user llvm-19 \
 && rm -rf /var/lib/apt/lists/*

ARG EXTRAS=quantize,plan,metrics,tensorboard,dask,serial,tflm,sklearn
COPY . /opt/glowc
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir "/opt/glowc[$EXTRAS]"

# Any user may make its cache there.
ENV PATH=/opt/venv/bin:$PATH HOME=/tmp
RUN mkdir /work && chown 1000:1000 /work
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["glowc"]
