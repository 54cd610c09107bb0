/**
 * Texts of the launcher. They are part of the loader, so the page loads no further file for them. Its size
 * limit has room for six languages; the launcher is English for other visitors until the chat is loaded.
 */
export const launcherTexts: Record<string, readonly [openLauncher: string, loadFailed: string]> = {
  en: ['Open chat', 'Chat did not load'],
  de: ['Chat öffnen', 'Chat lädt nicht'],
  es: ['Abrir el chat', 'Chat no cargado'],
  fr: ['Ouvrir le chat', 'Chat non chargé'],
  ar: ['فتح المحادثة', 'تعذّر فتح المحادثة'],
  ja: ['チャットを開く', 'チャットを開けません'],
}
