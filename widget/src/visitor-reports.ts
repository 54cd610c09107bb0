import { createConfigRefresh } from './config-refresh.ts'
import { createPageReports, type PageReportsDeps } from './page-reports.ts'
import { createVisitorTyping, type VisitorTypingDeps } from './visitor-typing.ts'

export type VisitorReports = ReturnType<typeof createVisitorReports>

/**
 * Reports what the visitor does (typing, the current page) and keeps the configuration up to date.
 * Imported after the chat is shown.
 */
export const createVisitorReports = (deps: {
  config: Parameters<typeof createConfigRefresh>[0]
  typing: VisitorTypingDeps
  pages: PageReportsDeps
}) => ({
  config: createConfigRefresh(deps.config),
  typing: createVisitorTyping(deps.typing),
  pages: createPageReports(deps.pages),
})
