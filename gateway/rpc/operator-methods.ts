import { type DescMethod, type DescService, getOption } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { admission } from '#proto/access/v1/access_pb.js'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { OperatorService } from '#proto/operator/v1/operator_pb.js'
import { PrivacyService } from '#proto/privacy/v1/privacy_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'

const SERVICES: DescService[] = [
  SessionService,
  MessagingService,
  CommandService,
  LeadService,
  PrivacyService,
  HookService,
  WorkspaceService,
  OperatorService,
]

/** URL path, for example `/service.messaging.v1.MessagingService/SendAgentMessage`. */
export const pathOf = ({ parent, name }: DescMethod) => `/${parent.typeName}/${name}`

/** Whether a call may be sent again if its outcome is unknown. */
export const isRepeatable = ({ idempotency }: DescMethod) =>
  idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN

export const isStream = ({ methodKind }: DescMethod) => methodKind === 'server_streaming'

/** Returns the methods that consoles may call, by path. */
export function operatorMethods(): ReadonlyMap<string, DescMethod> {
  const methods = SERVICES.flatMap((service) => service.methods)
  return new Map(
    methods.filter((method) => getOption(method, admission).public).map((method) => [pathOf(method), method]),
  )
}
