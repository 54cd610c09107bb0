import { type Client, createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { OperatorService } from '#proto/operator/v1/operator_pb.js'
import { PrivacyService } from '#proto/privacy/v1/privacy_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'

export interface Operator {
  messaging: Client<typeof MessagingService>
  sessions: Client<typeof SessionService>
  workspaces: Client<typeof WorkspaceService>
  commands: Client<typeof CommandService>
  events: Client<typeof EventsService>
  leads: Client<typeof LeadService>
  hooks: Client<typeof HookService>
  privacy: Client<typeof PrivacyService>
  operators: Client<typeof OperatorService>
}

/** Creates Connect clients that send a service token, as internal services and operators' tools do. */
export function operatorOf(coreUrl: string, token: string): Operator {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`)
    return next(request)
  }
  const transport = createConnectTransport({ baseUrl: coreUrl, httpVersion: '2', interceptors: [authorize] })
  return {
    messaging: createClient(MessagingService, transport),
    sessions: createClient(SessionService, transport),
    workspaces: createClient(WorkspaceService, transport),
    commands: createClient(CommandService, transport),
    events: createClient(EventsService, transport),
    leads: createClient(LeadService, transport),
    hooks: createClient(HookService, transport),
    privacy: createClient(PrivacyService, transport),
    operators: createClient(OperatorService, transport),
  }
}
