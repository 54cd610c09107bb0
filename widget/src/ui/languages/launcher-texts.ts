/**
 * Texts of the launcher in all languages. They are part of the loader, so the page loads no further
 * file for them.
 */
export const launcherTexts: Record<string, readonly [openLauncher: string, loadFailed: string]> = {
  en: ['Open chat', 'Chat did not load. Try again?'],
  de: ['Chat öffnen', 'Chat nicht geladen. Noch einmal?'],
  es: ['Abrir el chat', 'Chat no cargado. ¿Reintentar?'],
  fr: ['Ouvrir le chat', 'Chat non chargé. Réessayer ?'],
  ar: ['فتح المحادثة', 'تعذّر تحميل المحادثة. إعادة المحاولة؟'],
  ja: ['チャットを開く', 'チャットを読み込めません。再試行しますか？'],
}
