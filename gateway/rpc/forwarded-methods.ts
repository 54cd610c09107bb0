import { type DescMethod, type DescService, getOption } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { type Admission, admission } from '#proto/access/v1/access_pb.js'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { EventsService } from '#proto/events/v1/events_pb.js'
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
  BotService,
  EventsService,
]

/** URL path, for example `/service.messaging.v1.MessagingService/SendAgentMessage`. */
export const pathOf = ({ parent, name }: DescMethod) => `/${parent.typeName}/${name}`

export const isRepeatable = ({ idempotency }: DescMethod) =>
  idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN

export const isRead = ({ idempotency }: DescMethod) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS

export const isStream = ({ methodKind }: DescMethod) => methodKind === 'server_streaming'

/** How long a core may wait for events before it answers. */
export const waitMaxMs = (method: DescMethod) => (method === EventsService.method.listEvents ? 30_000 : 0)

const methodsWith = (caller: keyof Admission & ('public' | 'bots')): ReadonlyMap<string, DescMethod> =>
  new Map(
    SERVICES.flatMap(({ methods }) => methods)
      .filter((method) => getOption(method, admission)[caller])
      .map((method) => [pathOf(method), method]),
  )

export const operatorMethods = methodsWith('public')

export const botMethods = methodsWith('bots')
