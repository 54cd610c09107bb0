import { createConfigRefresh } from './config-refresh.ts'
import { createPageReports, type PageReportsDeps } from './page-reports.ts'
import { createPresenceReports, type PresenceReportsDeps } from './presence-reports.ts'
import { createVisitorTyping, type VisitorTypingDeps } from './visitor-typing.ts'

export type VisitorReports = ReturnType<typeof createVisitorReports>

/**
 * Reports what the visitor does: typing, the current page, and whether they see the chat. Keeps the
 * configuration up to date. Imported after the chat is shown.
 */
export const createVisitorReports = (deps: {
  config: Parameters<typeof createConfigRefresh>[0]
  typing: VisitorTypingDeps
  pages: PageReportsDeps
  presence: PresenceReportsDeps
}) => ({
  config: createConfigRefresh(deps.config),
  typing: createVisitorTyping(deps.typing),
  pages: createPageReports(deps.pages),
  presence: createPresenceReports(deps.presence),
})
