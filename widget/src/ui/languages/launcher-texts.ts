/**
 * Texts of the launcher in all languages. They are part of the loader, so the page loads no further
 * file for them.
 */
export const launcherTexts: Record<string, readonly [openLauncher: string, loadFailed: string]> = {
  en: ['Open chat', 'Chat did not load. Try again?'],
  de: ['Chat öffnen', 'Nicht geladen. Noch einmal?'],
  es: ['Abrir el chat', 'No cargado. ¿Reintentar?'],
  fr: ['Ouvrir le chat', 'Non chargé. Réessayer ?'],
  ar: ['فتح المحادثة', 'تعذّر التحميل. إعادة المحاولة؟'],
  ja: ['チャットを開く', '読み込めません。再試行？'],
}
