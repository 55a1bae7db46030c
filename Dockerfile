# glowc with every compiler and emulator that it uses.
#
#   docker build -t glowc .
#   docker run --rm -v "$PWD:/work" glowc compile kws.onnx --board mps2-an386 -o build/kws
FROM debian:12-slim

RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      python3 python3-venv gcc libc6-dev make cmake \
      gcc-arm-none-eabi libnewlib-arm-none-eabi \
      gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross \
      qemu-system-arm qemu-user llvm-19 \
 && rm -rf /var/lib/apt/lists/*

COPY . /opt/glowc
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir '/opt/glowc[quantize,plan,metrics]'

ENV PATH=/opt/venv/bin:$PATH
WORKDIR /work
ENTRYPOINT ["glowc"]
