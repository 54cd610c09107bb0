import { Code, ConnectError, createClient, type Interceptor, type Transport } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { OperatorService } from '#proto/operator/v1/operator_pb.js'
import { PrivacyService } from '#proto/privacy/v1/privacy_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { consoleHeader } from './session.ts'

export type Api = ReturnType<typeof createApi>

/** Creates clients of the internal services that an operator's session may call. */
export function createApi(transport: Transport) {
  return {
    messaging: createClient(MessagingService, transport),
    sessions: createClient(SessionService, transport),
    commands: createClient(CommandService, transport),
    privacy: createClient(PrivacyService, transport),
    leads: createClient(LeadService, transport),
    hooks: createClient(HookService, transport),
    workspaces: createClient(WorkspaceService, transport),
    operators: createClient(OperatorService, transport),
  }
}

/** Marks each call as one of the console; the browser adds the cookie. */
export function authorize(sessionId: () => string | undefined, onRejected: (sessionId: string) => void): Interceptor {
  return (next) => async (request) => {
    const id = sessionId()
    if (id === undefined) throw new ConnectError('signed out', Code.Unauthenticated)
    request.header.set(...consoleHeader)
    const checkError = (error: unknown) => {
      if (ConnectError.from(error).code === Code.Unauthenticated) onRejected(id)
      return error
    }
    try {
      const response = await next(request)
      return response.stream ? { ...response, message: watchErrors(response.message, checkError) } : response
    } catch (error) {
      throw checkError(error)
    }
  }
}

async function* watchErrors<T>(messages: AsyncIterable<T>, checkError: (error: unknown) => unknown): AsyncIterable<T> {
  try {
    yield* messages
  } catch (error) {
    throw checkError(error)
  }
}
