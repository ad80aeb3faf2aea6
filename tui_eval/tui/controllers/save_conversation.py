"""A conversation saved as a new case, the change shown before it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_eval.config.entry_line import with_rule
from tui_eval.guard.secrets import MASK
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case
from tui_eval.store.printed_commands import shell_line
from tui_eval.tui.controllers.editing import SavedElsewhere
from tui_eval.tui.controllers.recorded import RecordedController
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.services import AppServices

if TYPE_CHECKING:
    from tui_eval.config.project import Config
    from tui_eval.formats.format import Format
    from tui_eval.tui.state.case.case_content import CaseContent
    from tui_eval.tui.state.case.copying import SaveChoice, SaveOffer


NOT_ASKED = "the conversation is not saved, as you went on"


class Written(NamedTuple):
    """A file as it is (None: there is none) and as it will be."""

    path: Path
    old: str | None
    new: str


class Writing(NamedTuple):
    """Files that would be written; what changes in them, and what else to know of it, as they are shown: with secrets
    masked."""

    files: list[Written]
    shown: str
    told: list[str]


def _offer(
    case: Case, shown: Case, attempt: Attempt, names: set[str], config: Config, trust: Trust
) -> SaveOffer:
    """In a thread: the formats, and for each a file; the suite that the case is of, where that can take one more.

    Raises:
        EditError: there is nothing to save, which is said before anybody is asked where.
    """
    from tui_eval.formats import format_of
    from tui_eval.formats.saving import own_suite, proposed_name, proposed_path, saved_formats, talk_of
    from tui_eval.tui.state.case.copying import SaveChoice, SaveOffer

    talk_of(case, attempt)
    formats = saved_formats()
    files = {
        form: own_suite(form, case, attempt, config, trust) or proposed_path(form, shown, config.root)
        for form in formats
    }
    form = case.format if format_of(case.format).saves else formats[0]
    titles = {name: format_of(name).title for name in formats}
    several = [titles[name] for name in formats if format_of(name).adds_to_files]
    by_file = [name for name in formats if format_of(name).named_by_file]
    return SaveOffer(
        SaveChoice(form, files[form], proposed_name(shown, names)), files, titles, several, by_file
    )


class SaveController:
    """Asks where, shows, writes. `bring` puts the cursor of the suites on a case, once it is there; what was read
    is given to `read`."""

    def __init__(
        self,
        services: AppServices,
        recorded: RecordedController,
        saved: SavedElsewhere,
        bring: Callable[[str, str], Any],
    ) -> None:
        self._core, self._recorded, self._saved, self._bring = services, recorded, saved, bring
        self._places, self._suites = services.places, services.suites
        self.state, self._notices = services.state, services.notices
        self._saved_suite, self._saved_name, self._column = "", "", ""
        """The suite whose new case the cursor is to go to once it has been read, what that is called, and the end of
        its id in the column that the conversation was in."""

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"case.save": self.save}

    def _not_written(self, error: Exception) -> None:
        self._notices.problem(str(error))

    def save(self) -> None:
        """Ask for format, file and name, show the change, write it."""
        pointer = self._places.pointer()
        if pointer is None:
            self._notices.say("put the cursor on a case first")
            return

        def take(content: CaseContent) -> None:
            if content.attempt is None or content.case is None:
                self._notices.say(content.problem or "there is no finished conversation to save")
            else:
                now = self.state.by_id.get(content.case.case_id)  # it may have been mended since
                case = (now.as_written if now is not None else None) or content.case
                shown = now.case if now is not None and now.case is not None else content.case
                self._ask_where(case, shown, content.attempt)

        self._recorded.read(pointer, take)

    def _ask_where(self, case: Case, shown: Case, attempt: Attempt) -> None:
        """Ask, once it is known which files can take it; with the names that the case has on the screen."""
        names = {item.name for item in self.state.rows if item.suite == case.suite}
        work = partial(_offer, case, shown, attempt, names, *self._project())
        stays = self._places.stays()

        def ask(offer: SaveOffer) -> None:
            if stays():
                self._ask(case, attempt, offer)
            else:
                self._notices.say(NOT_ASKED)

        slow = f"looking at {case.suite}"
        self._core.tasks.thread(work, ask, self._not_written, name="save", opens=True, slow=slow)

    def _ask(self, case: Case, attempt: Attempt, offer: SaveOffer, problem: str = "") -> None:
        """Show the dialog; with what was typed and why it cannot be, until it can or the person leaves."""

        def again(choice: SaveChoice, error: Exception) -> None:
            self._ask(case, attempt, replace(offer, choice=choice), str(error))

        def answer(choice: SaveChoice | None) -> None:
            if choice is not None:
                work = partial(self._made, case, attempt, choice)
                stays = self._places.stays()

                def show(change: Writing) -> None:
                    if stays():
                        self._show_saved(case, attempt, choice, change)
                    else:
                        self._notices.say(NOT_ASKED)

                slow = f"looking at {choice.file}: what would change"
                failed = partial(again, choice)
                self._core.tasks.thread(work, show, failed, name="save", opens=True, slow=slow)

        self._places.show("save dialog", offer, problem, answer=answer)

    def _made(self, case: Case, attempt: Attempt, choice: SaveChoice) -> Writing:
        """In a thread: the file, and where the case would find no agent, tui_eval.yaml with a rule for it.

        Raises:
            EditError: it cannot be.
        """
        from tui_eval.config.project import masker, secrets
        from tui_eval.formats import format_of
        from tui_eval.formats.accepting import shown_diff
        from tui_eval.formats.saving import left_out, save, talk_of, unread
        from tui_eval.yaml.yaml_edit import EditError

        path = self.state.root / choice.file
        if not path.resolve().is_relative_to(self.state.root.resolve()):
            raise EditError(f"{choice.file} is outside the project")
        talk = talk_of(case, attempt, choice.name)
        config, trust = self._project()
        files = [Written(path, *save(choice.form, path, talk, config, trust))]
        files += self._rule_for(path, attempt, format_of(choice.form))
        texts = {
            file.path.relative_to(self.state.root).as_posix(): (file.old or "", file.new) for file in files
        }
        told = [line for line in (left_out(choice.form, case, attempt), *unread(choice.form, case)) if line]
        return Writing(files, shown_diff(texts, case, secrets(config)), masker(config).value(told))

    def _project(self) -> tuple[Config, Trust]:
        """What suites are read with."""
        from tui_eval.config.project import Config

        state = self.state
        return state.config or Config(root=state.root), Trust(granted=state.trusted, agreed=state.agreed)

    def _rule_for(self, path: Path, attempt: Attempt, form: Format) -> list[Written]:
        """Where a suite of this format does not say who answers it: whoever answered this, unless a rule says so
        already."""
        from tui_eval.config.project import rule_for
        from tui_eval.yaml.yaml_edit import EditError

        config = self.state.config
        spec = config.agents.get(attempt.agent) if config is not None else None
        if config is None or config.file is None or spec is None or not form.saved_needs_rule(spec):
            return []
        name = path.relative_to(self.state.root).as_posix()
        rule = rule_for(config, name)
        if rule is not None and rule.agent:
            return []
        values = {"path": name, "agent": attempt.agent}
        if rule is not None and rule.database:
            values["database"] = rule.database
        try:
            old = config.file.read_bytes().decode("utf-8")
            return [Written(config.file, old, with_rule(old, values))]
        except (OSError, ValueError) as error:
            raise EditError(f"{config.file.name}: {error}; name the agent of {name} there by hand") from None

    def _show_saved(self, case: Case, attempt: Attempt, choice: SaveChoice, change: Writing) -> None:
        from tui_eval.formats.accepting import replace_file

        root, files, diff = self.state.root, change.files, change.shown
        names = [file.path.relative_to(root).as_posix() for file in files]

        def write() -> None:
            for file in files:
                replace_file(*file)

        def answer(value: str | None) -> None:
            if value == "write":
                done = partial(self._saved_case, files, names[0], choice.name, case)
                self._core.tasks.thread(write, lambda _: done(), self._not_written, name="save")

        title = f"{'A new file' if files[0].old is None else 'One more case in'} {names[0]}"
        if len(files) > 1:
            title += f", and who answers it in {names[1]}"
        told = list(change.told)
        hidden = any(MASK in line and line[:1] == "+" for line in diff.splitlines())
        if hidden and MASK not in files[0].new:
            told.append(
                f"{MASK} is written as it stands in {case.suite}: in clear, where it is a secret there"
            )
        self._places.show("change", title, diff, told=told, answer=answer)

    def _saved_case(self, files: list[Written], suite: str, name: str, case: Case) -> None:
        self._saved.known([str(file.path) for file in files])
        self._saved_suite, self._saved_name = suite, name
        self._column = "".join(f"::{part}" for part in case.case_id.split("::")[2:])
        if files[0].old is None or len(files) > 1:
            self._suites.load()
        else:
            self._suites.reload([files[0].path])
        place = self._places.place
        # Lists of a run hold what it asked: there `r` would run what the cursor stands on.
        here = place is not None and place.kind == "suites"
        self._notices.say(
            f"written: {files[0].path.name}; {'r' if here else 'U goes to it, r there'} runs it"
        )

    def read(self, loaded: Loaded) -> None:
        """Put the list's cursor on the case that was written last."""
        if not loaded.done:
            return
        name, self._saved_suite = self._saved_suite, ""
        suite = next((suite for suite in self.state.suites if suite.path == name), None)
        if name and suite is None:
            words = f"{name} is not below what is open here"
            self._notices.say(f"written, but {words}: tui-eval {shell_line([name])} opens it")
        if suite is not None and suite.cases:
            # A scenario's cases stand behind it, and each of its columns is one.
            called = [row for row in self.state.rows if row.suite == name and row.name == self._saved_name]
            ours = [row for row in called if row.case_id.endswith(self._column)] or called[:1]
            self._bring(ours[-1].case_id if ours else suite.cases[-1].case_id, name)
