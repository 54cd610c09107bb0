import type {
  Appearance as AppearanceOfProto,
  AppearanceTranslation,
  Capabilities as CapabilitiesOfProto,
} from '#proto/session/v1/session_pb.js'
import type {
  Installation as InstallationOfProto,
  PolicySetting as PolicySettingOfProto,
  UpdateInstallationRequest,
} from '#proto/workspace/v1/workspace_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import { ServiceError } from '../errors.ts'

export interface Workspace {
  workspaceId: string
  name: string
  createdAt: Date
  /** Absent periods have the default of the settings. */
  retention?: Retention
}

export const retentionKinds = ['conversations', 'leads', 'emptySessions', 'audit', 'heldDeliveries'] as const
export type RetentionKind = (typeof retentionKinds)[number]

/** Days for which data is kept, by its kind; 0 means no limit. */
export type Retention = Partial<Record<RetentionKind, number>>

/** Settings of a workspace. A period that is `null` returns to the default. */
export interface WorkspaceSettings {
  name?: string
  retention?: Partial<Record<RetentionKind, number | null>>
}

export type ConnectionStatus = 'enabled' | 'disabled'

export interface Connection {
  connectionId: string
  workspaceId: string
  name: string
  status: ConnectionStatus
  /** Number of changes of the status. */
  statusVersion: number
}

export interface Appearance
  extends Omit<ProtoFields<AppearanceOfProto>, 'position' | 'translations' | 'openingReplies'> {
  position: 'left' | 'right'
  openingReplies?: { texts: string[] }
  /** Texts in other languages, by canonical locale tag. */
  translations?: Record<string, Translation>
}

/** An absent text is shown in the default language. */
export type Translation = Pick<Appearance, 'openingReplies'> &
  Omit<ProtoFields<AppearanceTranslation>, 'openingReplies'>

export const hasTexts = (texts: Translation): boolean => Object.values(texts).some((text) => text !== undefined)

export type Capabilities = Record<keyof ProtoFields<CapabilitiesOfProto>, boolean>

export interface FormField {
  name: string
  label: string
  type: 'text' | 'email' | 'tel' | 'textarea'
  required: boolean
  maxLength: number
}

export type FormKind = 'preChat' | 'offline'
export type Forms = Partial<Record<FormKind, FormField[]>>

/** Consent that visitors must give before they send a message or a form. */
export interface ConsentPolicy {
  required: boolean
  policyUrl?: string
  /** A decision counts for one version only. */
  policyVersion?: string
}

/** Settings that the protos have in another form. */
type OwnForm = 'appearance' | 'capabilities' | 'forms' | 'availability' | 'consent'

export interface Installation extends Omit<ProtoFields<InstallationOfProto>, OwnForm | 'identityKeyIds'> {
  appearance: Appearance
  capabilities: Capabilities
  forms?: Forms
  /** If absent, consent is not required. */
  consent?: ConsentPolicy
  /** Assertions signed with these are accepted. The current one is first, then those that it replaced. */
  identitySecrets: SealedIdentitySecret[]
  /** Absent fields have the values of `defaultAvailability`. */
  availability?: Partial<Availability>
}

/** Times are `HH:MM`; `to` may be `24:00`. */
export interface Span {
  from: string
  to: string
}

export interface Availability {
  /** `auto` follows the opening hours; the others override them and `requiresOperator`. */
  mode: 'auto' | 'online' | 'away'
  /** IANA name. */
  timeZone: string
  /** Weekdays are 1 (Monday) to 7 (Sunday). */
  weeklyHours: (Span & { weekday: number })[]
  /** `date` is `YYYY-MM-DD`. A date without hours is closed. */
  exceptions: { date: string; hours: Span[] }[]
  /** Whether somebody must also watch the workspace's inbox. */
  requiresOperator: boolean
}

export const defaultAvailability: Availability = {
  mode: 'auto',
  timeZone: 'UTC',
  weeklyHours: [],
  exceptions: [],
  requiresOperator: false,
}

export interface SealedIdentitySecret {
  kid: string
  sealed: string
  createdAt: Date
  replacedAt?: Date
}

/** Settings of an installation. Each appearance text, capability and form is set separately. */
export interface InstallationSettings
  extends Omit<ProtoFields<UpdateInstallationRequest>, OwnForm | 'origins' | 'siteKey' | 'idempotencyKey'> {
  origins?: string[]
  appearance?: Partial<Appearance>
  capabilities?: Partial<Capabilities>
  forms?: Forms
  availability?: Partial<Availability>
  /** Replaces the whole policy. */
  consent?: ConsentPolicy
}

export const defaultAppearance: Appearance = {
  title: 'Chat with us',
  greeting: 'Hello! How can we help?',
  accentColor: '#1f6f5c',
  position: 'right',
}

/** Throws `RouteNotAdvertised` if the installation does not have the capability. */
export function requireCapability(
  { capabilities }: Pick<Installation, 'capabilities'>,
  capability: keyof Capabilities,
) {
  if (!capabilities[capability]) throw new ServiceError('RouteNotAdvertised')
}

export const defaultCapabilities: Capabilities = {
  identity: true,
  typing: true,
  pageContext: true,
  navigation: true,
  screenshots: true,
  preChatForm: false,
  offlineForm: false,
  messageRetryRoute: false,
  presence: true,
  receipts: true,
  rating: true,
  stopAnswer: true,
}

export type PolicySetting = ProtoFields<PolicySettingOfProto>

export interface PolicyChange {
  _id: string
  workspaceId: string
  at: Date
  /** Name of the token or of the operator. */
  actor: string
  /** Method of the call, for example `UpdateInstallation`. */
  action: string
  /** An installation, connection, session, or the workspace itself. Unset when the session is removed. */
  target?: string
  settings: PolicySetting[]
  /** False until the write has succeeded. */
  isConfirmed: boolean
}
