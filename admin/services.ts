import { type Client, createClient, type Transport } from '@connectrpc/connect'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { PrivacyService } from '#proto/privacy/v1/privacy_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'

/** The internal services that the administration commands call. */
export interface Services {
  workspaces: Client<typeof WorkspaceService>
  sessions: Client<typeof SessionService>
  leads: Client<typeof LeadService>
  events: Client<typeof EventsService>
  hooks: Client<typeof HookService>
  messaging: Client<typeof MessagingService>
  privacy: Client<typeof PrivacyService>
  console: Client<typeof ConsoleService>
}

export function createServices(transport: Transport): Services {
  return {
    workspaces: createClient(WorkspaceService, transport),
    sessions: createClient(SessionService, transport),
    leads: createClient(LeadService, transport),
    events: createClient(EventsService, transport),
    hooks: createClient(HookService, transport),
    messaging: createClient(MessagingService, transport),
    privacy: createClient(PrivacyService, transport),
    console: createClient(ConsoleService, transport),
  }
}
