"""Italy's commuters, from an archive of ISTAT's form."""

import io
import zipfile

import pytest

from hierdp.data.italy import italy
from hierdp.errors import InputError
from hierdp.mechanisms.top_down import true_table

HEAD = (
    "CODREG_ORIG;REGIONE_ORIG;CODPRO_ORIG;PROVINCIA_ORIG;CODCOM_ORIG;COMUNE_ORIG;PROCOM_ORIG;NSEZ_ORIG;"
    "CODREG_DEST;REGIONE_DEST;CODPRO_DEST;PROVINCIA_DEST;CODCOM_DEST;COMUNE_DEST;PROCOM_DEST;NSEZ_DEST;"
    "NOMEASC_ORIG;NOMEASC_DEST;TOTALE;TOTALE_STUDENTI;TOTALE_LAVORATORI"
)
TURIN = "1;Piemonte;1;Torino;272;Torino;1272"
IVREA = "1;Piemonte;1;Torino;125;Ivrea;1125"
AOSTA = "2;Valle d'Aosta;7;Aosta;3;Aosta;7003"


def archive(path, regions, head=HEAD):
    with zipfile.ZipFile(path, "w") as outer:
        for name, rows in regions.items():
            inner = io.BytesIO()
            with zipfile.ZipFile(inner, "w") as file:
                file.writestr(f"{name}.csv", "\n".join([head, *rows]).encode("ISO-8859-1"))
            outer.writestr(f"Pendolarismo per sezione di censimento/{name}.zip", inner.getvalue())
    return path


def row(origin, destination, commuters):
    return f"{origin};5;{destination};8;Città;Città;{commuters};1;{commuters - 1}"


def test_sections_are_added_up_to_municipalities(tmp_path):
    regions = {
        "R01": [row(TURIN, TURIN, 3), row(TURIN, TURIN, 4), row(IVREA, TURIN, 2), row(IVREA, AOSTA, 1)],
        "R02": [row(AOSTA, TURIN, 5)],
    }
    data = italy(archive(tmp_path / "istat.zip", regions))
    assert data.axis_names == ("origin", "destination")
    assert data.axes[0].levels == ("nation", "region", "province", "municipality")
    assert data.axes[0].tree.level_sizes.tolist() == [1, 2, 2, 3]
    names = data.axes[0].names[-1]
    found = {(names[o], names[d]): n for (o, d), n in zip(data.cells, data.counts.tolist(), strict=True)}
    assert found == {
        ("1272", "1272"): 7, ("1125", "1272"): 2, ("1125", "7003"): 1, ("7003", "1272"): 5
    }  # fmt: skip
    assert true_table(data).level.max() == 6  # as many levels as the authors'


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.zip").write_text("not an archive")
    with pytest.raises(InputError, match=r"a\.zip is not ISTAT's archive"):
        italy(tmp_path / "a.zip")
    with pytest.raises(InputError, match=r"empty\.zip is not ISTAT's archive"):
        italy(archive(tmp_path / "empty.zip", {}))
    head = HEAD.replace("PROCOM_DEST", "COMUNE_DEST")
    with pytest.raises(
        InputError, match=r"^\S*b\.zip: \S.*R01\.zip has the columns CODREG_ORIG, .*three that end in _DEST"
    ):
        italy(archive(tmp_path / "b.zip", {"R01": [row(TURIN, AOSTA, 2)]}, head))
