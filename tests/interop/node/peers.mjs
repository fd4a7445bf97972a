/**
 * Official Views and hosts, as many as the tests ask for, in one process.
 *
 *   node peers.mjs PATH      listens on the Unix socket PATH; ends when its stdin does
 *
 * A connection says in its first line what it is:
 *   {"peer": N, "kind": "view" | "bridge", "sdk": "2" | "1"}    the control channel of a new peer
 *   {"peer": N}                                                 a wire to that peer
 *
 * A view is an App of ext-apps 2.x or 1.x, a bridge is an AppBridge of 2.x. See wire.mjs.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import net from "node:net";

import * as sdk2 from "@modelcontextprotocol/ext-apps";
import * as sdk1 from "ext-apps-1x";

import { officialBridge } from "./bridge.mjs";
import { officialView } from "./view.mjs";
import { Peer, eachLine } from "./wire.mjs";

const SDKS = {
  1: { App: sdk1.App, version: versionOf("ext-apps-1x") },
  2: { App: sdk2.App, version: versionOf("@modelcontextprotocol/ext-apps") },
};

const path = process.argv[2];
const peers = new Map();
const current = new AsyncLocalStorage(); // the peer that runs: whose the warnings of the SDK are

function versionOf(sdk) {
  const manifest = new URL("../../package.json", import.meta.resolve(sdk));
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}

function openPeer(socket, { peer: number, kind, sdk }) {
  const peer = new Peer(socket);
  const { App, version } = SDKS[sdk];
  const known = kind === "view" ? officialView(peer, App) : officialBridge(peer);
  known.wireTo = ({ peer: other }) => {
    const socket = net.connect({ path, allowHalfOpen: true });
    socket.write(JSON.stringify({ peer: other }) + "\n");
    listen(socket, openWire(socket, { peer: number }));
  };
  peers.set(number, peer);
  peer.emit("ready", { sdk: version });
  const onend = () => {
    peers.delete(number);
    socket.destroy();
    peer.wire.destroy();
  };
  return { peer, online: (line) => peer.obey(known, line), onend };
}

function openWire(socket, { peer: number }) {
  const peer = peers.get(number);
  return { peer, ...peer.wire.attach(socket) };
}

/** Gives each line to the channel; without one yet, the first line says which it is. */
function listen(socket, channel = null) {
  eachLine(
    socket,
    (line) => {
      if (channel) return current.run(channel.peer, channel.online, line);
      const hello = JSON.parse(line);
      channel = hello.kind ? openPeer(socket, hello) : openWire(socket, hello);
    },
    () => channel && current.run(channel.peer, channel.onend),
  );
}

console.log = console.info = console.debug = console.error;
console.warn = (text) => {
  console.error(text);
  current.getStore()?.emit("warning", { text: String(text) });
};
process.on("unhandledRejection", (error) =>
  current.getStore()?.emit("error", { message: String(error?.message) }),
);
process.stdin.resume().on("end", () => process.exit(0));
net
  .createServer({ allowHalfOpen: true }, (socket) => listen(socket))
  .listen(path, () => process.stdout.write("ready\n"));
