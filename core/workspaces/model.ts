import type {
  Appearance as AppearanceOfProto,
  AppearanceTranslation,
  Capabilities as CapabilitiesOfProto,
} from '#proto/session/v1/session_pb.js'
import type {
  Installation as InstallationOfProto,
  UpdateInstallationRequest,
} from '#proto/workspace/v1/workspace_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'

export interface Workspace {
  workspaceId: string
  name: string
  createdAt: Date
  /** Periods that the workspace has set. Absent ones have the default of the settings. */
  retention?: Retention
}

export const retentionKinds = ['conversations', 'leads', 'emptySessions', 'audit', 'heldDeliveries'] as const
export type RetentionKind = (typeof retentionKinds)[number]

/** Days for which data is kept, by kind of data; 0 keeps it without limit. */
export type Retention = Partial<Record<RetentionKind, number>>

/** Fields of a workspace that can be set. A period that is `null` returns to the default. */
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
  /** Number of changes of the status so far. */
  statusVersion: number
}

export interface Appearance
  extends Omit<ProtoFields<AppearanceOfProto>, 'position' | 'translations' | 'openingReplies'> {
  position: 'left' | 'right'
  openingReplies?: { texts: string[] }
  /** Texts in other languages, by canonical locale tag. */
  translations?: Record<string, Translation>
}

/** Texts in one language. A text that is absent is shown in the default language. */
export type Translation = Pick<Appearance, 'openingReplies'> &
  Omit<ProtoFields<AppearanceTranslation>, 'openingReplies'>

export const hasTexts = (texts: Translation): boolean => Object.values(texts).some((text) => text !== undefined)

export type Capabilities = Record<keyof ProtoFields<CapabilitiesOfProto>, boolean>

/** One field of a form that visitors fill in. */
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

/** Settings that the protos have as messages, and this product in a form of its own. */
type OwnForm = 'appearance' | 'capabilities' | 'forms' | 'availability' | 'consent'

export interface Installation extends Omit<ProtoFields<InstallationOfProto>, OwnForm | 'identityKeyIds'> {
  appearance: Appearance
  capabilities: Capabilities
  forms?: Forms
  /** Absent if the installation never had a policy. Consent is then not required. */
  consent?: ConsentPolicy
  /**
   * Live identity secrets: assertions signed with them are accepted. The current secret is first,
   * followed by the secrets that it replaced.
   */
  identitySecrets: SealedIdentitySecret[]
  /** When visitors can reach somebody. Absent fields have the values of `defaultAvailability`. */
  availability?: Partial<Availability>
}

/** A period of one day. The times are `HH:MM`; `to` may be `24:00`. */
export interface Span {
  from: string
  to: string
}

export interface Availability {
  /**
   * `auto` follows the opening hours. `online` and `away` override the opening hours and
   * `requiresOperator`.
   */
  mode: 'auto' | 'online' | 'away'
  /** IANA name of the time zone of the hours. */
  timeZone: string
  /** Opening hours of the weekdays, from Monday (1) to Sunday (7). */
  weeklyHours: (Span & { weekday: number })[]
  /** Dates (`YYYY-MM-DD`) with their own hours. A date without hours is closed. */
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
  /** Time at which a rotation replaced the secret. */
  replacedAt?: Date
}

/**
 * Fields of an installation that can be set. Each appearance text, capability and form is a
 * separate field.
 */
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

/** A setting that a change has set. The value is cut to 256 characters. */
export interface PolicySetting {
  name: string
  value: string
}

/** Entry of the record of policy changes. */
export interface PolicyChange {
  changeId: string
  workspaceId: string
  at: Date
  /** Name of the token or of the operator. */
  actor: string
  /** Method of the call, for example `UpdateInstallation`. */
  action: string
  /**
   * The changed installation, connection or session, or the workspace for its own settings and its
   * suppression list. Unset when the session is removed.
   */
  target?: string
  settings: PolicySetting[]
  /** False until the write has succeeded. */
  isConfirmed: boolean
}
