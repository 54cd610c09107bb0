import { createServer, type Server, type Socket } from 'node:net'
import { answer, type CommandContext } from './commands.ts'
import { connectToEngine, type EngineConnection } from './engine-connection.ts'
import { helloOf, type Member } from './topology.ts'
import { encode, encodeLegacyReply, encodeMessage, messagesOf, parseRequest, type Request } from './wire.ts'

const helloNames = ['hello', 'ismaster', 'isMaster']

/** Creates the server of a member. The caller starts it, and then sets `member.host`. */
export function serveMember(context: CommandContext, member: Member, socketPath: string): Server {
  return createServer({ noDelay: true }, (socket) => {
    if (!member.isUp) return void socket.resetAndDestroy()
    member.connections.add(socket)
    socket.on('error', () => {})
    const engine = connectToEngine(socketPath, () => socket.destroy())
    socket.on('close', () => {
      member.connections.delete(socket)
      engine.close()
    })
    serve(context, member, socket, engine).catch(() => socket.destroy())
  })
}

async function serve(context: CommandContext, member: Member, socket: Socket, engine: EngineConnection) {
  for await (const message of messagesOf(socket)) {
    const request = parseRequest(message)
    if (helloNames.includes(Object.keys(request.command)[0]!)) await greet(context, member, socket, request)
    else {
      const reply = await answer(context, member, engine, request)
      if (!reply || socket.destroyed) return void socket.resetAndDestroy()
      socket.write(encodeMessage(reply, { responseTo: request.id }).message)
    }
  }
}

/**
 * Answers `hello`. If a monitor sends the topology version that it knows, the answer waits for a
 * change. After the answer to an exhaust request, further answers follow.
 */
async function greet({ topology }: CommandContext, member: Member, socket: Socket, request: Request) {
  const { command, id, isLegacy, isExhaust } = request
  if (isLegacy) return void socket.write(encodeLegacyReply(encode(helloOf(topology, member)), id))
  let known = command.topologyVersion && Number(command.topologyVersion.counter)
  let responseTo = id
  do {
    if (known !== undefined) await change(member, known, Number(command.maxAwaitTimeMS ?? 0))
    if (socket.destroyed) return
    const sent = encodeMessage(encode(helloOf(topology, member)), { responseTo, hasMore: isExhaust })
    socket.write(sent.message)
    known = member.version
    responseTo = sent.id
  } while (isExhaust)

  async function change({ version: _ }: Member, version: number, withinMs: number) {
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, withinMs)
    const isLate = late.promise.then(() => true)
    while (member.version === version && !(await Promise.race([topology.changed().then(() => false), isLate]))) {}
    clearTimeout(timer)
  }
}
