import { type Client, Code, ConnectError, createClient, type Interceptor, type Transport } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'

/** The internal services, as the workspace session may use them. */
export interface Api {
  messaging: Client<typeof MessagingService>
  sessions: Client<typeof SessionService>
  commands: Client<typeof CommandService>
  leads: Client<typeof LeadService>
  workspaces: Client<typeof WorkspaceService>
}

export function createApi(transport: Transport): Api {
  return {
    messaging: createClient(MessagingService, transport),
    sessions: createClient(SessionService, transport),
    commands: createClient(CommandService, transport),
    leads: createClient(LeadService, transport),
    workspaces: createClient(WorkspaceService, transport),
  }
}

/** Shows the session at each call, and tells when it is not accepted any more. */
export function authorize(token: () => string | undefined, onRefused: (token: string) => void): Interceptor {
  return (next) => async (request) => {
    const shown = token()
    if (shown === undefined) throw new ConnectError('signed out', Code.Unauthenticated)
    request.header.set('Authorization', `Bearer ${shown}`)
    const refused = (error: unknown) => {
      if (ConnectError.from(error).code === Code.Unauthenticated) onRefused(shown)
      return error
    }
    try {
      const response = await next(request)
      return response.stream ? { ...response, message: watched(response.message, refused) } : response
    } catch (error) {
      throw refused(error)
    }
  }
}

async function* watched<T>(messages: AsyncIterable<T>, refused: (error: unknown) => unknown): AsyncIterable<T> {
  try {
    yield* messages
  } catch (error) {
    throw refused(error)
  }
}
