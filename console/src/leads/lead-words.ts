const sources: Record<string, string> = {
  'pre-chat-form': 'Pre-chat form',
  'offline-form': 'Offline form',
}

export const sourceText = (source: string) => sources[source] ?? source
