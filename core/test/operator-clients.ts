import { createClient, type Transport } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import type { RunningCore } from '../context.ts'
import { accessOf } from '../transport/caller.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { transportTo } from './transports.ts'

/** Creates clients that call the core as an operator of the workspace. */
export async function clientsOf(core: RunningCore, workspaceId: string | undefined) {
  const scopes = [...operatorScopes]
  const token = await accessOf(core).issue({ subject: 'ada', scopes, workspaceId })
  const inMemory = transportTo(core)
  const transport: Transport = {
    ...inMemory,
    unary: (method, signal, timeoutMs, _header, input) =>
      inMemory.unary(method, signal, timeoutMs, { authorization: `Bearer ${token}` }, input),
  }
  return {
    workspaces: createClient(WorkspaceService, transport),
    leads: createClient(LeadService, transport),
    hooks: createClient(HookService, transport),
    commands: createClient(CommandService, transport),
    messaging: createClient(MessagingService, transport),
    sessions: createClient(SessionService, transport),
  }
}

export type Clients = Awaited<ReturnType<typeof clientsOf>>
