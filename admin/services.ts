import { createRegistry, type DescService } from '@bufbuild/protobuf'
import { type Client, createClient, type Transport } from '@connectrpc/connect'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { PrivacyService } from '#proto/privacy/v1/privacy_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'

const services = {
  workspaces: WorkspaceService,
  sessions: SessionService,
  leads: LeadService,
  events: EventsService,
  hooks: HookService,
  messaging: MessagingService,
  privacy: PrivacyService,
  console: ConsoleService,
}

export const schemas = createRegistry(
  ...Object.values<DescService>(services).flatMap(({ file }) => [file, ...file.dependencies]),
)

export type Services = { [Name in keyof typeof services]: Client<(typeof services)[Name]> } & { transport: Transport }

export function createServices(transport: Transport): Services {
  const clients = Object.entries<DescService>(services).map(([name, service]) => [
    name,
    createClient(service, transport),
  ])
  return { ...Object.fromEntries(clients), transport }
}
