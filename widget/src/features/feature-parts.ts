import type { Platform } from '../../../browser/platform.ts'
import type { Grants } from '../session/session.ts'
import type { Api } from '../transport/api.ts'
import type { Emitter } from '../vocabulary/events.ts'
import type { PageContext, SessionView, WidgetConfig, WidgetMessage } from '../vocabulary/types.ts'
import type { ConsentRecords } from './consent-record.ts'
import type { FeatureRecords } from './feature-record.ts'

/** Kinds of agents' requests that the application handles. Others are answered with `unsupported`. */
export interface SupportedRequests {
  navigation: boolean
  screenshots: boolean
}

export interface FeaturesDeps {
  api: Api
  platform: Platform
  emitter: Emitter
  siteKey: string
  supports?: Partial<SupportedRequests>
  config(): WidgetConfig | undefined
  refreshConfig(): Promise<void>
  session(): SessionView | undefined
  /** Returns by how much the browser's clock is ahead of the service's, in milliseconds. */
  aheadMs(): number
  messages(): readonly WidgetMessage[]
  pageContext(): PageContext | undefined
  /** Returns a function that makes calls with grants of the current session. */
  grants: Grants
  consentRecords: ConsentRecords
  consented<Answer>(call: () => Promise<Answer>): Promise<Answer>
}

export interface FeatureParts extends FeaturesDeps {
  records: FeatureRecords
}
