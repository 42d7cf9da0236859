import { useEffect, useState } from 'preact/hooks';

type Theme = 'light' | 'dark';
const key = 'attn-theme';

/** Storage may be disabled; then the choice lasts until the page is closed. */
function stored(): Theme | undefined {
  try {
    const value = localStorage.getItem(key);
    return value === 'light' || value === 'dark' ? value : undefined;
  } catch {
    return undefined;
  }
}

function preferred(): Theme {
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** The system's theme unless the visitor chooses one. */
export function ThemeButton() {
  const [chosen, setChosen] = useState(stored);
  const [system, setSystem] = useState(preferred);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const update = () => setSystem(preferred());
    query.addEventListener('change', update);
    return () => query.removeEventListener('change', update);
  }, []);
  const theme = chosen ?? system;
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  const other: Theme = theme === 'dark' ? 'light' : 'dark';
  const choose = () => {
    setChosen(other);
    try {
      localStorage.setItem(key, other);
    } catch {
      // Not stored.
    }
  };
  return (
    <button type="button" class="quiet theme" aria-label={other === 'dark' ? 'Dark theme' : 'Light theme'} onClick={choose}>
      <span aria-hidden="true">◐</span>
    </button>
  );
}
