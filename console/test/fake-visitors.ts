import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect'
import { type Command, CommandKind, CommandSchema, CommandService } from '#proto/command/v1/command_pb.js'
import { type Session, SessionSchema, SessionService } from '#proto/session/v1/session_pb.js'

/** Fake visitor sessions and requests in memory. */
export function fakeVisitors() {
  const sessions = new Map<string, Session>()
  const commands: Command[] = []
  const operations = new Map<string, Command>()
  let picture: Uint8Array = new Uint8Array()

  function found(sessionId: string): Session {
    const session = sessions.get(sessionId)
    if (!session) throw new ConnectError('NotFound', Code.NotFound)
    return session
  }
  function set(sessionId: string, change: Partial<Session>) {
    const session = { ...found(sessionId), ...change }
    sessions.set(sessionId, session)
    return { session }
  }
  function ask(kind: CommandKind, sessionId: string, operation: string | undefined, more: object) {
    const known = operations.get(operation ?? '')
    if (known) return { command: commands.find(({ commandId }) => commandId === known.commandId)!, replayed: true }
    const command = create(CommandSchema, {
      commandId: `cmd_${commands.length + 1}`,
      sessionId,
      kind,
      state: 'requested',
      requestedAt: timestampFromMs(Date.now()),
      expiresAt: timestampFromMs(Date.now() + 120_000),
      ...more,
    })
    commands.unshift(command)
    if (operation) operations.set(operation, command)
    return { command }
  }
  const commandOf = (id: string) => {
    const command = commands.find(({ commandId }) => commandId === id)
    if (!command) throw new ConnectError('CommandNotFound', Code.NotFound)
    return command
  }

  return {
    routes(router: ConnectRouter) {
      router.service(SessionService, {
        getSession: ({ sessionId }) => ({ session: found(sessionId) }),
        revokeSession: ({ sessionId }) => set(sessionId, { state: 'revoked' }),
        banVisitor: ({ sessionId }) => set(sessionId, { state: 'banned', visitorBanned: true }),
        unbanVisitor: ({ sessionId }) => set(sessionId, { visitorBanned: false }),
      })
      router.service(CommandService, {
        requestScreenshot: ({ sessionId, purpose, clientOperationId }) =>
          ask(CommandKind.SCREENSHOT, sessionId, clientOperationId, { purpose }),
        requestNavigation: ({ sessionId, url, label, clientOperationId }) =>
          ask(CommandKind.NAVIGATION, sessionId, clientOperationId, { url, label }),
        listCommands: ({ sessionId }) => ({ commands: commands.filter((one) => one.sessionId === sessionId) }),
        async *getScreenshot({ commandId }) {
          const { contentType, byteLength } = commandOf(commandId)
          yield { part: { case: 'header' as const, value: { commandId, contentType, byteLength } } }
          yield { part: { case: 'chunk' as const, value: picture } }
        },
      })
    },
    addSession(session: MessageInitShape<typeof SessionSchema> & { sessionId: string }) {
      sessions.set(
        session.sessionId,
        create(SessionSchema, {
          workspaceId: 'ws_shop',
          connectionId: 'con_site',
          publicSiteKey: 'pk_shop',
          origin: 'https://shop.example',
          state: 'active',
          identityState: 'anonymous',
          addressKnown: true,
          createdAt: timestampFromMs(Date.now() - 900_000),
          expiresAt: timestampFromMs(Date.now() + 900_000),
          ...session,
        }),
      )
    },
    session: found,
    commands: () => commands,
    resolve(commandId: string, state: string) {
      commandOf(commandId).state = state
    },
    upload(commandId: string, bytes: Uint8Array, contentType = 'image/png') {
      picture = bytes
      Object.assign(commandOf(commandId), { state: 'uploaded', byteLength: bytes.length, contentType })
    },
  }
}
